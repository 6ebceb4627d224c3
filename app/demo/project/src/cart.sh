# Prices are whole cents.

# total PRICE QUANTITY prints what a line of the cart costs.
total() { echo $(($1 * $2)); }

# discount PRICE PERCENT prints the price after a discount, rounded half up.
discount() { echo $(($1 * (100 - $2) / 100)); }

# shipping TOTAL prints what sending costs: free from 50.00 on.
shipping() { if [ "$1" -ge 5000 ]; then echo 0; else echo 490; fi; }
